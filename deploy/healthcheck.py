"""Exit 0 if the node in this container responds to /ready with 200, else 1."""

import http.client
import os
import sys

# Longer than the node itself waits for a locked database.
PATIENCE_SECONDS = 7

# Not urllib, which would use the proxy in HTTP_PROXY.
connection = http.client.HTTPConnection(
    "127.0.0.1", int(os.environ.get("CACP_PORT", "8080")), timeout=PATIENCE_SECONDS
)
try:
    connection.request("GET", "/ready")
    answer = connection.getresponse()
    print(answer.read().decode())
except OSError as error:
    sys.exit(f"The node does not respond: {error}")
sys.exit(answer.status != http.client.OK)
