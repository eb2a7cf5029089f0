-- Which findings are there, and how many exchanges have them?
-- plot: exchanges
SELECT
    code,
    name,
    arg_min(severity, severity_rank(severity)) AS severity,
    coalesce(mode(blame), '') AS mostly_blames,
    count(*) AS findings,
    count(DISTINCT (tape, exchange)) AS exchanges,
    count(DISTINCT tape) AS tapes,
    round(100.0 * count(DISTINCT (tape, exchange)) / (SELECT count(*) FROM exchanges), 2) AS percent,
    min(day) AS first_day,
    max(day) AS last_day
FROM findings
GROUP BY code, name
ORDER BY severity_rank(arg_min(severity, severity_rank(severity))), exchanges DESC, code
