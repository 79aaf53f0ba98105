--: A parameter is no position: it sorts nothing.
--: verdict: either order_constant
--: params: 'x', :limit
SELECT id FROM booking ORDER BY $1::text, id LIMIT $2
