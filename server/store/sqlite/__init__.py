"""What only a store on SQLite needs: its files, their lock, log and migrations."""
