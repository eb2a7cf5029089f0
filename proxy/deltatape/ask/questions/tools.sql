-- Which tools are called, and in what state do their calls arrive?
-- plot: calls
SELECT
    coalesce(name, '(no name)') AS tool,
    kind,
    count(*) AS calls,
    count(*) FILTER (status IN ('complete', 'empty_ok')) AS complete,
    count(*) FILTER (status NOT IN ('complete', 'empty_ok')) AS broken,
    coalesce(mode(status) FILTER (status NOT IN ('complete', 'empty_ok')), '') AS mostly,
    count(*) FILTER (len(repairs) > 0) AS mended,
    median(arguments_bytes)::BIGINT AS median_bytes,
    max(arguments_bytes) AS largest_bytes
FROM calls
GROUP BY ALL
ORDER BY calls DESC, tool, kind
