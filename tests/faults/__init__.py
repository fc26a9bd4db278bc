"""The disk under SQLite fails: the power goes at every moment, and every call to it is refused.

`shim.py` stands between SQLite and the disk, keeps an account of what was asked of it
(`account.py`) and refuses what it is told to; `images.py` makes of an account what a power loss may
leave; `callers.py` are agents that write through the node's own methods, `survey.py` starts nodes
on images and judges what they find.
"""
