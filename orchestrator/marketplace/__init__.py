"""Where nodes come from: one folder a driver, and the register that puts several together. Drivers only; no story."""
