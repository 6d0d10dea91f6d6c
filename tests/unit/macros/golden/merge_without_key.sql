select
    DBT_INTERNAL_DEST.`id` as `id`,
    DBT_INTERNAL_DEST.`status` as `status` from `shop`.`orders` as DBT_INTERNAL_DEST
  union all
  select
    DBT_INTERNAL_SOURCE.`id` as `id`,
    DBT_INTERNAL_SOURCE.`status` as `status` from `shop`.`new_rows` as DBT_INTERNAL_SOURCE
