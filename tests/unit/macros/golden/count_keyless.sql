select
    coalesce(sum(n) filter (where n > 0), 0) as inserted, 0 as updated, coalesce(-sum(n) filter (where n < 0), 0) as deleted,
    0 as bad_keys, (select count(*) from `shop`.`orders`) as rows_before
  from `shop`.`changed`
