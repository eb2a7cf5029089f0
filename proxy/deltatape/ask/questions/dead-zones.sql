-- How long are streams silent, by provider and by what the model was doing?
--
-- A dead zone (D001, D004) is a silence within a stream; see findings.md.
-- plot: dead_zones
SELECT
    provider,
    coalesce(phase, 'unknown') AS phase,
    count(*) AS dead_zones,
    count(DISTINCT (tape, exchange)) AS exchanges,
    round(median(silent_ns) / 1e9, 1) AS median_s,
    round(quantile_cont(silent_ns, 0.95) / 1e9, 1) AS p95_s,
    round(max(silent_ns) / 1e9, 1) AS longest_s,
    round(sum(silent_ns) / 1e9, 1) AS total_s,
    arg_max(tape || '#' || exchange, silent_ns) AS longest_in
FROM findings
WHERE code IN ('D001', 'D004')
GROUP BY ALL
ORDER BY total_s DESC NULLS LAST, provider, phase
