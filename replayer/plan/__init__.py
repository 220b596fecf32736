"""Plans: pure, seeded and fingerprinted; nothing here touches a mount or a clock."""
