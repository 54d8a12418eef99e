"""The conversation with a service, without I/O: profile, templates, selectors, text models, state machine."""
