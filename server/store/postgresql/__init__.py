"""What only a store on PostgreSQL needs: its connection, dialect, migrations and failures."""
