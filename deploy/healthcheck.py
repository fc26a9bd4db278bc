"""Exit 0 when the node of this container answers /ready with 200, 1 otherwise."""

import http.client
import os
import sys

# Longer than the node itself waits for a locked database.
PATIENCE_SECONDS = 7

# Not urllib, which would go through the proxy that HTTP_PROXY names.
connection = http.client.HTTPConnection(
    "127.0.0.1", int(os.environ.get("CACP_PORT", "8080")), timeout=PATIENCE_SECONDS
)
try:
    connection.request("GET", "/ready")
    answer = connection.getresponse()
    print(answer.read().decode())
except OSError as error:
    sys.exit(f"The node doesn't answer: {error}")
sys.exit(answer.status != http.client.OK)
