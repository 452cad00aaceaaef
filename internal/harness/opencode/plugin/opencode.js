// Passes on to agency what happens in this run. It changes nothing, waits for nothing and fails silently.
import { spawn, spawnSync } from "node:child_process"

const command = HOOK_COMMAND
const headless = HEADLESS

const most = { events: 1000, text: 65536, input: 16384 }
const quiet = new Set(["session.diff", "session.compacted", "session.deleted"])

export const Agency = async () => {
  const parents = new Map() // session -> the session that it helps
  const calls = new Map() // tool call -> its state
  const totals = new Map() // session -> what it has used
  const texts = new Map() // session -> what was said last
  const errors = new Map() // session -> the error that ended its turn
  const cuts = new Map() // session -> how many answers of its model in a row ended early
  let waiting = []
  let calling = false

  // One call at a time keeps the order; what comes meanwhile goes with the next one.
  const call = () => {
    if (calling || waiting.length === 0) return
    calling = true
    let over = false
    const end = () => {
      if (over) return
      over = true
      calling = false
      call()
    }
    try {
      const child = spawn(command[0], command.slice(1), { stdio: ["pipe", "ignore", "ignore"], timeout: 5000 })
      child.on("error", end)
      child.on("close", end)
      child.stdin.on("error", () => {})
      child.stdin.end(JSON.stringify(waiting.splice(0)))
      child.unref()
    } catch {
      end()
    }
  }

  const tell = (type, properties) => {
    if (waiting.length >= most.events) return
    const parent = parents.get(properties.sessionID)
    waiting.push(parent ? { type, properties, parent } : { type, properties })
    // A run without a terminal exits right after its last turn.
    if (headless && type === "session.idle" && !parent) {
      try {
        spawnSync(command[0], command.slice(1), { input: JSON.stringify(waiting.splice(0)), stdio: ["pipe", "ignore", "ignore"], timeout: 2000 })
      } catch {}
      return
    }
    call()
  }

  const session = (type, properties) => {
    const { id, parentID, model, cost, tokens } = properties.info ?? {}
    if (parentID) parents.set(id, parentID)
    const known = { sessionID: properties.sessionID ?? id, info: { id, parentID, model } }
    if (!headless) Object.assign(known.info, { cost, tokens })
    const total = JSON.stringify(known)
    if (totals.get(id) === total) return
    totals.set(id, total)
    tell(type, known)
  }

  // An answer that ends early is asked for again at once, many times a second and without an event of its own. It is told each
  // time that the number has doubled.
  const step = (sessionID, reason) => {
    if (reason !== "unknown" && reason !== "other") return cuts.delete(sessionID)
    const count = (cuts.get(sessionID) ?? 0) + 1
    cuts.set(sessionID, count)
    if ((count & (count - 1)) === 0) tell("session.cut", { sessionID, count })
  }

  const part = ({ sessionID, part }) => {
    if (part?.type === "step-finish") return step(sessionID, part.reason)
    if (part?.type === "text" && part.time?.end && !part.synthetic) texts.set(sessionID, part.text?.slice(0, most.text))
    if (part?.type !== "tool") return
    const { tool, callID, state } = part
    if (!state || state.status === "pending" || calls.get(callID) === state.status) return
    if (state.status === "running") calls.set(callID, state.status)
    else calls.delete(callID)
    let input = state.input
    if (JSON.stringify(input ?? null).length > most.input) input = { filePath: input.filePath, description: input.description }
    tell("message.part.updated", { sessionID, part: { type: "tool", tool, callID, state: { status: state.status, input } } })
  }

  const handle = ({ type, properties }) => {
    const id = properties?.sessionID
    switch (type) {
      case "session.created":
      case "session.updated":
        return session(type, properties)
      case "message.part.updated":
        return part(properties)
      case "session.status":
        if (properties.status?.type === "idle" || (properties.status?.type === "busy" && cuts.has(id))) return
        errors.delete(id)
        return tell(type, properties)
      case "session.error":
        errors.set(id, properties.error)
        return tell(type, properties)
      case "session.idle":
        cuts.delete(id)
        return tell(type, { sessionID: id, error: errors.get(id), text: texts.get(id) })
    }
    if (/^(session|permission|question)\./.test(type) && !quiet.has(type)) tell(type, properties ?? {})
  }

  return {
    event: async ({ event }) => {
      try {
        handle(event)
      } catch {}
    },
    "chat.message": async ({ sessionID }) => {
      try {
        texts.delete(sessionID)
        cuts.delete(sessionID)
        tell("chat.message", { sessionID })
      } catch {}
    },
  }
}
