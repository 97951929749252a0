"""What this machine must have for the kit, and has: `workshop doctor`."""
