-- Ranks and the GPU that each drives.
-- Grain: one row per rank (rank)
-- Needs: devices, processes
-- Columns:
--   rank INTEGER  process driving one GPU
--   process_id INTEGER  process of the capture
--   device_name VARCHAR  name as the driver prints it
--   memory_bandwidth_bytes_per_s BIGINT  peak that the capture states
--   clock_known BOOLEAN  times of this rank are comparable with those of others
SELECT
  devices.rank,
  devices.process_id,
  devices.name AS device_name,
  devices.memory_bandwidth_bytes_per_s,
  processes.wall_clock_base_ns IS NOT NULL AS clock_known,
FROM devices
JOIN processes USING (process_id)
