"""Run plans, observe runs, generate inputs, and predict memory."""
