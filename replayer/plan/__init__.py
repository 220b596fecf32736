"""Plans: pure, seeded and fingerprinted; nothing here touches a mount or a clock.

A scenario comes in, a document of plan format 1 (FORMAT.md) goes out to an engine, a summary of it
to people.
"""
