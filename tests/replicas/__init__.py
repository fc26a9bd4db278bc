"""Replicas on one PostgreSQL under load and faults, and whether what they said can be true.

`history.py` judges what clients were told, by the small models of `models.py`; `account.py` judges
what is stored at the end and what readers of the stream were sent. `run.py` is a run by a seed: the
clients of `workload.py` (`calls.py` is how they call) and the readers of `readers.py` at the
replicas of `cluster.py`, to which `nemesis.py` does what a seed says. `planted.py` has faults that
a run must show.
"""
