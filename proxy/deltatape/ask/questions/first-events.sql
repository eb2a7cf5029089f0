-- How long does each model take to its first event?
-- plot: p95_s
SELECT
    provider,
    model,
    count(first_event_ns) AS exchanges,
    round(median(first_event_ns) / 1e9, 2) AS median_s,
    round(quantile_cont(first_event_ns, 0.95) / 1e9, 2) AS p95_s,
    round(quantile_cont(first_event_ns, 0.99) / 1e9, 2) AS p99_s,
    round(max(first_event_ns) / 1e9, 2) AS slowest_s,
    arg_max(tape || '#' || exchange, first_event_ns) AS slowest_in
FROM exchanges
WHERE first_event_ns IS NOT NULL
GROUP BY ALL
ORDER BY p95_s DESC, provider, model
