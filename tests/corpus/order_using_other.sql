--: An operator of another operator class is another order.
--: verdict: pass order_operator
SELECT id FROM booking ORDER BY title USING ~<~ LIMIT :limit
