"""Programs for developers of irrun, which no user needs: ``python -m tools`` lists them."""
