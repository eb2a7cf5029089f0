-- Which exchanges waited longest for their first event?
-- plot: first_event_s
SELECT
    tape || '#' || exchange AS exchange,
    time,
    provider,
    model,
    round(first_event_ns / 1e9, 2) AS first_event_s,
    round(duration_ns / 1e9, 2) AS took_s,
    input_tokens,
    output_tokens,
    status,
    ending
FROM exchanges
WHERE first_event_ns IS NOT NULL
ORDER BY first_event_ns DESC, tape, exchange
LIMIT 50
