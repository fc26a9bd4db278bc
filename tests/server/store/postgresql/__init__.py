"""Tests of what only a store on PostgreSQL needs."""
