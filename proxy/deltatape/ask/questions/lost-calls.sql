-- Which version of which client loses tool calls?
--
-- A call is lost if the next request repeats the reply without it (C001); `across`: only joining
-- several tapes shows it. The client is what `User-Agent` says.
-- plot: lost
WITH lost AS (
    SELECT
        client_name, client_version,
        count(*) AS lost,
        count(*) FILTER (across) AS across,
        arg_max(tape || '#' || exchange, time) AS last_in
    FROM findings
    WHERE code = 'C001'
    GROUP BY ALL
),
delivered AS (
    SELECT client_name, client_version, count(*) AS exchanges, sum(calls)::BIGINT AS calls
    FROM exchanges
    GROUP BY ALL
)
SELECT
    coalesce(d.client_name, 'unknown') AS client,
    coalesce(d.client_version, '') AS version,
    d.exchanges,
    d.calls,
    coalesce(l.lost, 0) AS lost,
    coalesce(l.across, 0) AS across,
    round(100.0 * coalesce(l.lost, 0) / nullif(d.calls, 0), 2) AS percent,
    l.last_in
FROM delivered AS d
LEFT JOIN lost AS l
    ON d.client_name IS NOT DISTINCT FROM l.client_name
    AND d.client_version IS NOT DISTINCT FROM l.client_version
ORDER BY lost DESC, percent DESC NULLS LAST, d.calls DESC, client, version
