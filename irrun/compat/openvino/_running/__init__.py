"""Compiled models, requests, queues of requests, and what goes in and comes out."""
