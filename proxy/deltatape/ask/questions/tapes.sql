-- Which tapes are there of each recorder and day, and which could not be read?
-- plot: exchanges
SELECT
    day,
    coalesce(gateway, 'unknown') AS recorder,
    count(*) AS tapes,
    count(problem) AS unreadable,
    sum(exchanges)::BIGINT AS exchanges,
    sum(findings)::BIGINT AS findings,
    round(sum(bytes) / 1048576.0, 1) AS megabytes,
    coalesce(any_value(source || ': ' || problem), '') AS example
FROM tapes
GROUP BY ALL
ORDER BY day DESC, unreadable DESC, recorder
