"""Takes personal data and secrets out of answers while they stream: pure, time is passed in."""
