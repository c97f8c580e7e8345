"""Load replayed on the real router, planner and scaler; the simulated engine."""
