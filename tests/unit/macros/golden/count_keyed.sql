select
    count_if(marker in (0, 4)) as inserted, count_if(marker = 1) as updated, count_if(marker = 2) as deleted,
    count_if(marker is null) as refused,
    (select count(*) from `shop`.`orders`) as rows_before
  from `shop`.`changed`
