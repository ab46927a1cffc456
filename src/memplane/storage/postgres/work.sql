-- Every statement here is short, and waits for no lock.

-- name: awaken
WITH late AS MATERIALIZED (
    SELECT tenant, owner_number FROM work WHERE state IN ('held', 'resting') AND due <= work_clock()
    ORDER BY due LIMIT :limit FOR UPDATE SKIP LOCKED
)
UPDATE work w SET state = 'waiting', holder = NULL,
    attempts = w.attempts + CASE w.state WHEN 'held' THEN 1 ELSE 0 END,
    failures = w.failures + CASE w.state WHEN 'held' THEN 1 ELSE 0 END,
    error = CASE w.state WHEN 'held' THEN 'lost' ELSE w.error END
FROM late WHERE w.tenant = late.tenant AND w.owner_number = late.owner_number

-- name: take
WITH next AS MATERIALIZED (
    SELECT tenant, owner_number FROM work WHERE state = 'waiting' AND tenant > :after
    ORDER BY tenant, due LIMIT 1 FOR UPDATE SKIP LOCKED
)
UPDATE work w SET state = 'held', holder = :holder, due = work_clock() + :length
FROM next n
JOIN tenant t ON t.number = n.tenant
JOIN space s ON s.tenant = n.tenant AND s.number = n.owner_number
WHERE w.tenant = n.tenant AND w.owner_number = n.owner_number
RETURNING w.tenant, w.owner_number, t.name, s.owner, w.holder, w.attempts, w.failures, w.error

-- name: renew
UPDATE work SET due = work_clock() + :length
WHERE tenant = :tenant AND owner_number = :number AND state = 'held' AND holder = :holder RETURNING 1

-- name: give_back
UPDATE work SET state = 'waiting', due = work_clock(), holder = NULL,
    attempts = CASE WHEN :got_on THEN 0 ELSE attempts END,
    failures = CASE WHEN :got_on THEN 0 ELSE failures END,
    error = CASE WHEN :got_on THEN NULL ELSE error END
WHERE tenant = :tenant AND owner_number = :number AND state = 'held' AND holder = :holder RETURNING 1

-- name: rest
UPDATE work SET state = 'resting', due = work_clock() + :length, holder = NULL, attempts = 0, failures = 0, error = NULL
WHERE tenant = :tenant AND owner_number = :number AND state = 'held' AND holder = :holder RETURNING 1

-- name: clear
DELETE FROM work
WHERE tenant = :tenant AND owner_number = :number AND state = 'held' AND holder = :holder RETURNING 1

-- name: fail
UPDATE work SET state = 'resting', due = work_clock() + :length, holder = NULL,
    attempts = attempts + 1, failures = failures + :counted, error = :error
WHERE tenant = :tenant AND owner_number = :number AND state = 'held' AND holder = :holder RETURNING 1

-- name: bury
UPDATE work SET state = 'dead', due = work_clock(), holder = NULL,
    attempts = attempts + 1, failures = failures + 1, error = :error
WHERE tenant = :tenant AND owner_number = :number AND state = 'held' AND holder = :holder RETURNING 1

-- name: dead
SELECT t.name, s.owner, w.attempts, w.error, w.due FROM work w
JOIN tenant t ON t.number = w.tenant JOIN space s ON s.tenant = w.tenant AND s.number = w.owner_number
WHERE w.state = 'dead' ORDER BY w.due, t.name, s.owner LIMIT :limit

-- name: retry
UPDATE work w SET state = 'waiting', due = work_clock(), attempts = 0, failures = 0, error = NULL
FROM space s JOIN tenant t ON t.number = s.tenant
WHERE w.tenant = s.tenant AND w.owner_number = s.number AND (w.state = 'dead' OR w.state = 'resting' AND w.attempts > 0)
AND (:every OR t.name = :tenant AND s.owner = :owner) RETURNING 1

-- name: backlog
SELECT count(*) FILTER (WHERE state = 'waiting'), count(*) FILTER (WHERE state = 'held'),
    count(*) FILTER (WHERE state = 'resting'), count(*) FILTER (WHERE state = 'dead'),
    count(*) FILTER (WHERE attempts > 0 AND state <> 'dead'),
    greatest(0, work_clock() - coalesce(min(due) FILTER (WHERE state = 'waiting'), work_clock())), work_behind()
FROM work

-- name: in_trouble
SELECT t.name, s.owner, w.attempts FROM work w
JOIN tenant t ON t.number = w.tenant JOIN space s ON s.tenant = w.tenant AND s.number = w.owner_number
WHERE w.attempts > 0 OR w.state = 'dead' LIMIT :limit

-- name: schedule
WITH batch AS MATERIALIZED (
    SELECT tenant, number FROM space WHERE (tenant, number) > (:tenant, :number)
    ORDER BY tenant, number LIMIT :limit
), marked AS (
    INSERT INTO work AS w (tenant, owner_number, state, due)
    SELECT tenant, number, 'resting', work_clock() + :within::bigint * (number % 997) / 997 FROM batch
    ON CONFLICT (tenant, owner_number) DO UPDATE SET due = least(w.due, excluded.due)
    WHERE w.state = 'resting' AND w.attempts = 0
)
SELECT tenant, number FROM batch ORDER BY tenant DESC, number DESC LIMIT 1

-- name: take_job
INSERT INTO job AS j (name, period, holder, until) VALUES (:name, :period, :holder, work_clock() + :length)
ON CONFLICT (name, period) DO UPDATE SET holder = excluded.holder, until = excluded.until, attempts = j.attempts + 1
WHERE j.done IS NULL AND j.until <= work_clock() RETURNING 1

-- name: job
SELECT done IS NOT NULL FROM job WHERE name = :name AND period = :period

-- name: renew_job
UPDATE job SET until = work_clock() + :length
WHERE name = :name AND period = :period AND holder = :holder AND done IS NULL RETURNING 1

-- name: finish_job
UPDATE job SET done = work_clock() WHERE name = :name AND period = :period AND holder = :holder AND done IS NULL RETURNING 1

-- name: give_job_back
UPDATE job SET until = work_clock() + :length
WHERE name = :name AND period = :period AND holder = :holder AND done IS NULL

-- name: forget_jobs
DELETE FROM job WHERE name = :name AND period <> :period AND done <= work_clock() - :kept

-- name: report
INSERT INTO worker (holder, began, seen, ended, taken, steps, failures, lost)
VALUES (:holder, work_clock(), work_clock(), :ended, :taken, :steps, :failures, :lost)
ON CONFLICT (holder) DO UPDATE SET seen = excluded.seen, ended = excluded.ended, taken = excluded.taken,
    steps = excluded.steps, failures = excluded.failures, lost = excluded.lost

-- name: workers
SELECT holder, began, seen, ended OR seen <= work_clock() - :silent, taken, steps, failures, lost
FROM worker WHERE holder <> '' ORDER BY began, holder

-- name: worked
SELECT coalesce(sum(taken), 0)::bigint, coalesce(sum(steps), 0)::bigint, coalesce(sum(failures), 0)::bigint,
    coalesce(sum(lost), 0)::bigint
FROM worker

-- name: add_up
WITH gone AS (
    DELETE FROM worker WHERE holder <> '' AND seen <= work_clock() - :kept RETURNING taken, steps, failures, lost
)
INSERT INTO worker AS w (holder, began, seen, ended, taken, steps, failures, lost)
SELECT '', 0, 0, true, coalesce(sum(taken), 0), coalesce(sum(steps), 0), coalesce(sum(failures), 0), coalesce(sum(lost), 0)
FROM gone
ON CONFLICT (holder) DO UPDATE SET taken = w.taken + excluded.taken, steps = w.steps + excluded.steps,
    failures = w.failures + excluded.failures, lost = w.lost + excluded.lost
