"""A scripted model that replaces the APIs of model providers, so that agents run without one."""
