-- What shows only when the tapes of several recorders are joined?
-- plot: findings
SELECT
    day,
    code,
    name,
    coalesce(client_name, 'unknown') AS client,
    count(*) AS findings,
    count(DISTINCT tape) AS tapes,
    arg_max(tape || '#' || exchange, time) AS last_in,
    arg_max(message, time) AS example
FROM findings
WHERE across
GROUP BY ALL
ORDER BY day DESC, findings DESC, code
