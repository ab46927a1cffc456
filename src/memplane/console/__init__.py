"""The console: web pages to browse and edit memory."""
