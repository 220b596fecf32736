"""Makes a scenario of a trace: what its requests do, as steps that a person can read and change."""
