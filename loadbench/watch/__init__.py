"""What is shown and written while a run goes on: the Prometheus endpoint, the terminal, the bundle. Fed by events."""
