"""A live server: many adapters on one encoder, asked over HTTP.

`app` answers HTTP requests, `service` decides about them, and `engine` computes
predictions. None of these needs Ray. `deployment` runs them as two deployments
of Ray Serve, and `server` starts and ends these.
"""
