"""Plan a model, run the plan, and observe runs."""
