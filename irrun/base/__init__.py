"""What everything stands on: source text with its lines, edits, files, weights, texts for people, time limits."""
