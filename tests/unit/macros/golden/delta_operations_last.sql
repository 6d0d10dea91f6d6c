describe history `shop`.`orders__next` limit 1
