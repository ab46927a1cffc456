"""What EntraBot keeps: who said what, the day in short, what was promised."""
