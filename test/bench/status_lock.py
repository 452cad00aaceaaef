"""The file protocol that agency's sessions replace, as its executors use it: a folder as the lock, a retry every 50 ms, the whole
document read, changed and written anew for each update.

Usage: status_lock.py DIR AGENTS WRITERS SECONDS. Prints one JSON object.
"""
import json
import multiprocessing
import os
import sys
import time
from datetime import datetime
from pathlib import Path

STATUSES = ("queued", "running", "complete", "failed", "cancelled")


def summary(agents):
    counts = {"total": len(agents), **dict.fromkeys(STATUSES, 0)}
    for agent in agents:
        status = agent.get("status", "queued")
        if status in counts:
            counts[status] += 1
    return counts


def create(session, n):
    session.mkdir(parents=True)
    agents = [
        {
            "id": f"{i:03d}", "name": f"{i:03d}-task-number-{i}", "prompt_path": f"prompts/demo/{i:03d}-task-number-{i}.md",
            "status": "queued", "wave": 1, "started_at": None, "completed_at": None, "duration_seconds": None, "exit_code": None,
            "pid": None, "log_file": f"{session}/{i:03d}.log", "model": "claude", "error": None,
        }
        for i in range(1, n + 1)
    ]
    document = {
        "schema_version": "1.0", "session_id": session.name, "source": "orchestrate", "source_file": "prompts/demo/000-orchestrator.md",
        "started_at": datetime.now().isoformat(), "completed_at": None, "status": "running", "agents": agents, "summary": summary(agents),
        "waves": [{"wave": 1, "status": "running", "agents": [a["id"] for a in agents]}],
    }
    (session / "status.json").write_text(json.dumps(document, indent=2))


def update(session, agent_id, changes):
    lock, path = session / "status.json.lock", session / "status.json"
    while True:
        try:
            lock.mkdir()
            break
        except FileExistsError:
            time.sleep(0.05)
    try:
        document = json.loads(path.read_text())
        for agent in document["agents"]:
            if agent["id"] == agent_id:
                agent.update(changes)
                break
        document["summary"] = summary(document["agents"])
        temp = path.with_suffix(".json.tmp")
        temp.write_text(json.dumps(document, indent=2))
        temp.rename(path)
    finally:
        lock.rmdir()


def write(session, agent_id, mark, seconds, start, results):
    took = []
    start.wait()
    end = time.monotonic() + seconds
    while (begin := time.monotonic()) < end:
        update(session, agent_id, {
            "status": "running", "started_at": datetime.now().isoformat(), "pid": os.getpid(), mark: len(took) + 1,
        })
        took.append(time.monotonic() - begin)
    results.put((agent_id, mark, took))


def main():
    session, n, writers, seconds = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]), float(sys.argv[4])
    create(session, n)
    context = multiprocessing.get_context("fork")
    start, results = context.Barrier(writers + 1), context.Queue()
    processes = [
        context.Process(target=write, args=(session, f"{1 + w * n // writers:03d}", f"updates_of_{w}", seconds, start, results))
        for w in range(writers)
    ]
    for p in processes:
        p.start()
    start.wait()
    begin = time.monotonic()
    done = [results.get() for _ in processes]
    elapsed = time.monotonic() - begin
    for p in processes:
        p.join()
    agents = {a["id"]: a for a in json.loads((session / "status.json").read_text())["agents"]}
    print(json.dumps({
        "seconds": elapsed,
        "counts": [len(took) for _, _, took in done],
        "took_ns": [int(t * 1e9) for _, _, all_took in done for t in all_took],
        "lost": sum(1 for agent, mark, took in done if took and agents[agent].get(mark) != len(took)),
    }))


main()
