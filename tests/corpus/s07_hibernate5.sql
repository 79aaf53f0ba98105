--: Hibernate 5, with generated aliases.
--: verdict: rewrite
--: params: :limit, :offset
select booking0_.id as id1_0_, booking0_.note as note2_0_ from booking booking0_ order by booking0_.id asc limit $1 offset $2
