-- Idle gaps of a rank: nothing runs between the latest end so far and the next start.
-- Grain: one row per gap (activity_id)
-- Needs: int_sweep, int_activities, int_rounds
-- Kept: table
-- Columns:
--   activity_id BIGINT  the activity that ends the gap
--   rank INTEGER  process driving one GPU
--   round_id BIGINT  round that the gap lies in
--   start_ns BIGINT  end of what ran before
--   end_ns BIGINT  start of the activity that ends the gap
--   process_id INTEGER  process of that activity
--   thread_id BIGINT  thread that launched it
--   launch_id BIGINT  its launching API call; NULL when unknown
--   launch_start_ns BIGINT  start of that call
--   in_one_replay BOOLEAN  both neighbours belong to one graph replay
WITH gaps AS (
  SELECT activity_id, rank, busy_until_ns AS start_ns, start_ns AS end_ns, busy_activity_id
  FROM int_sweep
  WHERE start_ns > busy_until_ns
)
SELECT
  gaps.activity_id,
  gaps.rank,
  rounds.round_id,
  gaps.start_ns,
  gaps.end_ns,
  next.process_id,
  next.thread_id,
  next.launch_id,
  next.launch_start_ns,
  coalesce(next.replay_id = previous.replay_id, FALSE) AS in_one_replay,
FROM gaps
ASOF JOIN int_rounds AS rounds
  ON gaps.rank = rounds.rank AND gaps.start_ns >= rounds.start_ns
JOIN int_activities AS next ON next.activity_id = gaps.activity_id
JOIN int_activities AS previous ON previous.activity_id = gaps.busy_activity_id
WHERE gaps.start_ns < rounds.end_ns
