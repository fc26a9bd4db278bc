"""A scripted model: stands in for the APIs of model providers, so that agents run without one."""
