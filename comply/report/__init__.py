"""Reports: for people, programs, CI and a README."""
