"""Tests of what only a store on SQLite needs."""
