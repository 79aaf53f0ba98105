--: SQLAlchemy with asyncpg: casts behind the parameters.
--: verdict: rewrite
--: params: :limit, :offset
SELECT booking.id, booking.note 
FROM booking ORDER BY booking.id 
 LIMIT $1::INTEGER OFFSET $2::INTEGER
