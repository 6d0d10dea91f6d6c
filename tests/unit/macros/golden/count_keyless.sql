select
    coalesce(sum(n) filter (where n > 0), 0) as inserted, 0 as updated, coalesce(-sum(n) filter (where n < 0), 0) as deleted,
    count_if(k0 is null) as refused, (select count(*) from `shop`.`orders`) as rows_before
  from `shop`.`changed`
