"""What is drawn of messages: diagrams, exports for other programs, and a page for the browser."""
