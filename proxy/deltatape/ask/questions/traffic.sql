-- How much traffic is there each day, and how much of it has findings?
-- plot: exchanges
SELECT
    day,
    count(*) AS exchanges,
    count(DISTINCT (tape, thread)) AS conversations,
    count(*) FILTER (findings > 0) AS with_findings,
    round(100.0 * count(*) FILTER (findings > 0) / count(*), 2) AS percent,
    sum(calls)::BIGINT AS calls,
    sum(input_tokens)::BIGINT AS input_tokens,
    sum(output_tokens)::BIGINT AS output_tokens,
    round(sum(dead_ns) / 1e9, 1) AS dead_s
FROM exchanges
GROUP BY day
ORDER BY day
