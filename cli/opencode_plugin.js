// Made by `cacp hook opencode --install`, removed by `cacp hook opencode --uninstall`.
// Shows this agent what waits for it at its CACP node, as `cacp hook --help` describes.
import { spawn } from "node:child_process"

const COMMAND = ["cacp", "hook", "opencode"]
const SECONDS = 10

// The text to show at an event of a session; empty when there is nothing, or no node answers.
function ask(event, session) {
  return new Promise((resolve) => {
    const child = spawn(COMMAND[0], [...COMMAND.slice(1), event], {
      stdio: ["pipe", "pipe", "ignore"],
      timeout: SECONDS * 1000,
    })
    let output = ""
    child.stdout.on("data", (data) => (output += data))
    child.on("error", () => resolve(""))
    child.on("close", () => {
      try {
        resolve(JSON.parse(output).text ?? "")
      } catch {
        resolve("")
      }
    })
    child.stdin.on("error", () => {})
    child.stdin.end(JSON.stringify({ session_id: session }))
  })
}

export const Cacp = async ({ client }) => {
  // Sessions of subagents: what they are shown, their caller would not see.
  const inner = new Set()
  return {
    "chat.message": async (input, output) => {
      if (inner.has(input.sessionID)) return
      const last = output.parts.at(-1)
      const text = last && (await ask("chat.message", input.sessionID))
      if (!text) return
      // Parts are sorted by id: this one follows the last.
      const { sessionID, messageID } = last
      const id = `${last.id}cacp`
      output.parts.push({ id, sessionID, messageID, type: "text", text, synthetic: true })
    },
    "tool.execute.after": async (input, output) => {
      if (inner.has(input.sessionID)) return
      const text = await ask("tool.execute.after", input.sessionID)
      if (text && typeof output.output === "string") output.output += `\n\n${text}`
    },
    event: async ({ event }) => {
      const { info, sessionID } = event.properties ?? {}
      if (event.type === "session.created" && info?.parentID) inner.add(info.id)
      if (inner.has(sessionID)) return
      if (event.type === "session.compacted") await ask("session.compacted", sessionID)
      if (event.type !== "session.idle") return
      const text = await ask("session.idle", sessionID)
      if (!text) return
      const body = { parts: [{ type: "text", text, synthetic: true }] }
      await client.session.promptAsync({ path: { id: sessionID }, body }).catch(() => {})
    },
  }
}
