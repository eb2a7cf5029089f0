-- How often do the arguments of each tool fit its schema?
--
-- Of calls whose arguments are complete and whose tool has a schema in the request.
-- plot: misfits
SELECT
    coalesce(name, '(no name)') AS tool,
    model,
    count(*) AS calls,
    count(schema_ok) AS checked,
    count(*) FILTER (NOT schema_ok) AS misfits,
    round(100.0 * count(*) FILTER (NOT schema_ok) / nullif(count(schema_ok), 0), 2) AS percent,
    count(*) FILTER (status NOT IN ('complete', 'empty_ok')) AS unusable,
    arg_max(tape || '#' || exchange, time) FILTER (NOT schema_ok) AS last_in
FROM calls
GROUP BY ALL
ORDER BY misfits DESC, unusable DESC, calls DESC, tool, model
