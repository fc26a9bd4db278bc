"""Replicas on one PostgreSQL under load and faults, and whether what they said can be true.

`history.py` judges what clients were told, by the small models of `models.py`; `account.py` judges
what is stored at the end and what readers of the stream were sent.
"""
